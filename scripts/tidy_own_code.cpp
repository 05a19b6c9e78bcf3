// A check for clang-tidy that finds nothing and saves time: the other checks walk over the project's own declarations alone, and not over
// those of torch's headers, whose findings nobody sees (HeaderFilterRegex). Three quarters of the time of a file with torch went there.
//
// scripts/lint.sh builds it and loads it: clang-tidy-14 -load build/lint/own_code.so --checks=own-code

#include <clang-tidy/ClangTidyCheck.h>
#include <clang-tidy/ClangTidyModule.h>
#include <clang-tidy/ClangTidyModuleRegistry.h>
#include <clang/AST/ASTContext.h>
#include <clang/ASTMatchers/ASTMatchFinder.h>
#include <clang/Basic/SourceManager.h>
#include <llvm/Support/Regex.h>

#include <vector>

namespace {

using namespace clang;
using namespace clang::ast_matchers;

class OwnCode : public tidy::ClangTidyCheck {
 public:
  OwnCode(StringRef name, tidy::ClangTidyContext* context) : ClangTidyCheck(name, context) {}

  void registerMatchers(MatchFinder* finder) override { finder->addMatcher(translationUnitDecl().bind("unit"), this); }

  /// The whole unit is the first thing that matchers see; what is to be walked over is asked for after that.
  void check(const MatchFinder::MatchResult& found) override {
    const auto* unit = found.Nodes.getNodeAs<TranslationUnitDecl>("unit");
    const SourceManager& sources = *found.SourceManager;
    const llvm::Regex own("/(host|bindings|tests|build/lint/include)/");
    std::vector<Decl*> scope;
    for (Decl* declaration : unit->decls()) {
      const SourceLocation place = sources.getExpansionLoc(declaration->getLocation());
      if (place.isValid() && (sources.isInMainFile(place) || (!sources.isInSystemHeader(place) && own.match(sources.getFilename(place))))) {
        scope.push_back(declaration);
      }
    }
    found.Context->setTraversalScope(scope);
  }
};

class OwnCodeModule : public tidy::ClangTidyModule {
 public:
  void addCheckFactories(tidy::ClangTidyCheckFactories& factories) override { factories.registerCheck<OwnCode>("own-code"); }
};

}  // namespace

static clang::tidy::ClangTidyModuleRegistry::Add<OwnCodeModule> added("own-code", "Walk over the project's own declarations.");
