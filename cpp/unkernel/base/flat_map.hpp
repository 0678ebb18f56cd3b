// A hash map from 64-bit keys to small values in one flat array: open addressing with linear probing, at most
// 2/3 full. The key with all bits set is reserved and marks empty slots. Hashes are seeded: see
// hash_seed.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unkernel/base/hash_seed.hpp"

namespace unkernel {

template <class Key, class Value>
class FlatMap {
 public:
  static constexpr Key no_key = static_cast<Key>(-1);

  FlatMap() : slots_(smallest, {no_key, Value{}}) {}

  // Returns the value of `key`; inserts 0 if the key is missing.
  Value& operator[](Key key) {
    if (3 * (size_ + 1) > 2 * slots_.size()) grow();
    Slot& slot = find_slot(key);
    if (slot.key == no_key) {
      slot = {key, Value{}};
      ++size_;
    }
    return slot.value;
  }

  // Returns a pointer to the value of `key`, or null.
  const Value* find(Key key) const {
    const Slot& slot = slots_[place_of(key)];
    return slot.key == no_key ? nullptr : &slot.value;
  }

  std::size_t size() const { return size_; }
  std::size_t bytes() const { return slots_.size() * sizeof(Slot); }

  // Calls visit(key, value) for all entries, in unspecified order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.key != no_key) visit(slot.key, slot.value);
    }
  }

  // Removes all entries. Keeps the allocated memory unless less than a sixteenth of it was used.
  void clear() {
    slots_.assign(slots_.size() > smallest && 16 * size_ < slots_.size() ? slots_.size() / 4 : slots_.size(),
                  {no_key, Value{}});
    size_ = 0;
  }

 private:
  static constexpr std::size_t smallest = 16;

  struct Slot {
    Key key;
    Value value;
  };

  std::size_t place_of(Key key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t place = static_cast<std::size_t>(seeded_hash(static_cast<std::uint64_t>(key))) & mask;
    while (slots_[place].key != no_key && slots_[place].key != key) place = (place + 1) & mask;
    return place;
  }

  Slot& find_slot(Key key) { return slots_[place_of(key)]; }

  void grow() {
    std::vector<Slot> old(2 * slots_.size(), {no_key, Value{}});
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.key != no_key) find_slot(slot.key) = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace unkernel
