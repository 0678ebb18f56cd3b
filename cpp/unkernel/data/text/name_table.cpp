#include "unkernel/data/text/name_table.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "unkernel/base/hash_seed.hpp"

namespace unkernel::data {
namespace {

constexpr std::size_t fewest_slots = 64;

// Packs up to seven bytes into a number. Different names of equal size give different numbers. Some bytes may
// be packed twice.
std::uint64_t first_bytes(const char* text, std::size_t size) {
  const auto byte = [&](std::size_t at) { return std::uint64_t{static_cast<unsigned char>(text[at])}; };
  if (size >= 4) {
    std::uint32_t first, last;
    std::memcpy(&first, text, 4);
    std::memcpy(&last, text + size - 4, 4);
    return std::uint64_t{last} << 32 | first;
  }
  return size == 0 ? 0 : byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16;
}

std::uint64_t eight_bytes(const char* text) {
  std::uint64_t word;
  std::memcpy(&word, text, 8);
  return word;
}

// Returns the key of a name: the name itself as a number if it has at most eight bytes, otherwise a hash of
// all bytes.
std::uint64_t key_of(std::string_view name) {
  if (name.size() < 8) return first_bytes(name.data(), name.size());
  if (name.size() == 8) return eight_bytes(name.data());
  std::uint64_t hash = name.size() ^ hash_seed.word;
  std::size_t at = 0;
  for (; at + 8 < name.size(); at += 8)
    hash = Random::mix(hash ^ eight_bytes(name.data() + at)) + 0x9e3779b97f4a7c15ULL;
  return Random::mix(hash ^ eight_bytes(name.data() + name.size() - 8));
}

// Returns the highest bits of a product with a secret odd number, so that two keys collide with a probability
// of at most 2 / `slots` (Dietzfelbinger et al. 1997).
std::size_t first_slot(std::uint64_t key, std::size_t slots) {
  return static_cast<std::size_t>((key * hash_seed.multiplier) >> (std::countl_zero(slots) + 1));
}

}  // namespace

NameTable::NameTable() : slots_(fewest_slots, {0, 0, -1}) {}

NameTable NameTable::of(std::string_view bytes, std::span<const std::int64_t> ends) {
  NameTable table;
  std::size_t begin = 0;
  for (const std::int64_t end : ends) {
    const auto next = static_cast<std::size_t>(end);  // a negative value becomes huge and fails the check
    if (next < begin || next > bytes.size())
      throw std::invalid_argument("the names of a table overlap, or lie beyond its end");
    const std::size_t known = table.size();
    table.add(bytes.substr(begin, next - begin));
    if (table.size() == known) throw std::invalid_argument("a name of a table occurs twice");
    begin = next;
  }
  if (begin != bytes.size()) throw std::invalid_argument("a table has bytes after its last name");
  return table;
}

std::int32_t NameTable::add(std::string_view name) {
  const std::uint64_t key = key_of(name);
  std::size_t slot = find_slot(name, key);
  if (slots_[slot].number >= 0) return slots_[slot].number;
  if (3 * (size() + 1) > 2 * slots_.size()) {
    grow();
    slot = find_slot(name, key);
  }
  if (size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()) ||
      name.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw std::length_error("there are too many different labels, or one has more than 4 GB");
  }
  const auto number = static_cast<std::int32_t>(size());
  bytes_.append(name);
  ends_.push_back(static_cast<std::int64_t>(bytes_.size()));
  slots_[slot] = {key, static_cast<std::uint32_t>(name.size()), number};
  return number;
}

std::int32_t NameTable::find(std::string_view name) const {
  return slots_[find_slot(name, key_of(name))].number;
}

std::string_view NameTable::name(std::int32_t number) const {
  const auto i = static_cast<std::size_t>(number);
  const auto begin = i == 0 ? std::size_t{0} : static_cast<std::size_t>(ends_[i - 1]);
  return std::string_view(bytes_).substr(begin, static_cast<std::size_t>(ends_[i]) - begin);
}

std::size_t NameTable::longest_probe() const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t longest = 0;
  for (std::size_t at = 0; at < slots_.size(); ++at) {
    if (slots_[at].number >= 0)
      longest = std::max(longest, (at - first_slot(slots_[at].key, slots_.size())) & mask);
  }
  return longest;
}

std::size_t NameTable::memory() const {
  return bytes_.capacity() + ends_.capacity() * sizeof(std::int64_t) + slots_.capacity() * sizeof(Slot);
}

std::size_t NameTable::find_slot(std::string_view text, std::uint64_t key) const {
  const std::size_t mask = slots_.size() - 1;
  const auto is_other = [&](const Slot& slot) {
    return slot.key != key || slot.size != text.size() || (text.size() > 8 && name(slot.number) != text);
  };
  std::size_t at = first_slot(key, slots_.size());
  while (slots_[at].number >= 0 && is_other(slots_[at])) at = (at + 1) & mask;
  return at;
}

void NameTable::grow() {
  std::vector<Slot> old(2 * slots_.size(), {0, 0, -1});
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.number < 0) continue;
    std::size_t at = first_slot(slot.key, slots_.size());
    while (slots_[at].number >= 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

}  // namespace unkernel::data
