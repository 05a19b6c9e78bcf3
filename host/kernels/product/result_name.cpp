#include "kernels/product/result_name.h"

namespace kf {
namespace {

thread_local const char* current_name = nullptr;

}  // namespace

ResultName::ResultName(const char* name) : before_(current_name) { current_name = name; }
ResultName::~ResultName() { current_name = before_; }
const char* ResultName::current() { return current_name; }

}  // namespace kf
