#pragma once
// Other kernels of products for a while.

#include "kernels/product/product.h"

namespace kf {

/// While it lives the products of this process are `products`; then those that were before.
class ProductsScope {
 public:
  explicit ProductsScope(const Products& products) : before_(kf::products()) { set_products(products); }
  ~ProductsScope() { set_products(before_); }
  ProductsScope(const ProductsScope&) = delete;
  ProductsScope& operator=(const ProductsScope&) = delete;

 private:
  Products before_;
};

}  // namespace kf
