#pragma once
#include "core/error.hpp"

#include <memory>
#include <type_traits>
#include <utility>

namespace kozero {

/// A struct of keys whose type its family alone knows; copied and compared as the struct is.
///
///     FamilyKeys keys{Gears{.teeth = 7}};
///     keys.as<Gears>().teeth;             // 7
class FamilyKeys {
public:
  template <class Struct>
  requires(!std::is_same_v<Struct, FamilyKeys>) explicit FamilyKeys(Struct keys)
      : held_(std::make_unique<Held<Struct>>(std::move(keys))) {}
  FamilyKeys(FamilyKeys const& other) : held_(other.held_->clone()) {}
  FamilyKeys& operator=(FamilyKeys const& other) {
    held_ = other.held_->clone();
    return *this;
  }
  FamilyKeys(FamilyKeys&&) = default;
  FamilyKeys& operator=(FamilyKeys&&) = default;

  /// Error when it is the struct of another family.
  template <class Struct>
  Struct& as() {
    auto* const held = dynamic_cast<Held<Struct>*>(held_.get());
    KOZERO_REQUIRE(held, "the keys of one model family are read as another's (a fault of kozero); please report it");
    return held->keys;
  }
  template <class Struct>
  Struct const& as() const {
    return const_cast<FamilyKeys&>(*this).as<Struct>();
  }
  friend bool operator==(FamilyKeys const& a, FamilyKeys const& b) { return a.held_->equals(*b.held_); }

private:
  struct Base {
    virtual ~Base() = default;
    virtual std::unique_ptr<Base> clone() const = 0;
    virtual bool equals(Base const& other) const = 0;
  };
  template <class Struct>
  struct Held final : Base {
    explicit Held(Struct from) : keys(std::move(from)) {}
    std::unique_ptr<Base> clone() const override { return std::make_unique<Held>(keys); }
    bool equals(Base const& other) const override {
      auto const* const same = dynamic_cast<Held const*>(&other);
      return same && same->keys == keys;
    }
    Struct keys;
  };
  std::unique_ptr<Base> held_; // empty in what was moved from alone
};

} // namespace kozero
