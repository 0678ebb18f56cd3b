#include "unkernel/data/name_table.hpp"

#include <cstring>
#include <limits>
#include <stdexcept>

#include "unkernel/base/random.hpp"

namespace unkernel::data {
namespace {

constexpr std::size_t fewest_slots = 64;

std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = name.size();
  while (name.size() >= 8) {
    std::uint64_t word;
    std::memcpy(&word, name.data(), 8);
    hash = Random::mix(hash ^ word) + 0x9e3779b97f4a7c15ULL;
    name.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  for (const char letter : name) rest = (rest << 8) | static_cast<unsigned char>(letter);
  return Random::mix(hash ^ rest);
}

}  // namespace

NameTable::NameTable() : slots_(fewest_slots, {0, -1}) {}

std::int32_t NameTable::add(std::string_view name) {
  const std::uint64_t hash = hash_of(name);
  std::size_t found = place(name, hash);
  if (slots_[found].number >= 0) return slots_[found].number;
  if (3 * (size() + 1) > 2 * slots_.size()) {
    grow();
    found = place(name, hash);
  }
  if (size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw std::length_error("too many different labels");
  }
  const auto number = static_cast<std::int32_t>(size());
  bytes_.append(name);
  ends_.push_back(static_cast<std::int64_t>(bytes_.size()));
  slots_[found] = {static_cast<std::uint32_t>(hash), number};
  return number;
}

std::int32_t NameTable::find(std::string_view name) const { return slots_[place(name, hash_of(name))].number; }

std::string_view NameTable::name(std::int32_t number) const {
  const auto i = static_cast<std::size_t>(number);
  const auto begin = i == 0 ? std::size_t{0} : static_cast<std::size_t>(ends_[i - 1]);
  return std::string_view(bytes_).substr(begin, static_cast<std::size_t>(ends_[i]) - begin);
}

std::size_t NameTable::memory() const {
  return bytes_.capacity() + ends_.capacity() * sizeof(std::int64_t) + slots_.capacity() * sizeof(Slot);
}

std::size_t NameTable::place(std::string_view text, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  const auto tag = static_cast<std::uint32_t>(hash);
  std::size_t at = tag & mask;
  while (slots_[at].number >= 0 && (slots_[at].hash != tag || name(slots_[at].number) != text)) at = (at + 1) & mask;
  return at;
}

void NameTable::grow() {
  std::vector<Slot> old(2 * slots_.size(), {0, -1});
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.number < 0) continue;
    std::size_t at = slot.hash & mask;
    while (slots_[at].number >= 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

}  // namespace unkernel::data
