// A hash table that maps pairs of an owner and a partner to places: indices of weights.
//
// The partners of an owner are hashed into buckets of seven; there are enough buckets that none overflows. A
// bucket holds 16-bit tags, and the place of its first partner; the places of its other partners follow. The
// hash is a bijection, so bucket and tag together identify the partner.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "unkernel/base/large_array.hpp"
#include "unkernel/engines/ranking.hpp"

namespace unkernel::engines {

class PartnerBuckets {
 public:
  // Partners must be below `limit`, which must be less than most_partners.
  explicit PartnerBuckets(std::size_t limit);

  static constexpr std::size_t most_partners = std::size_t{1} << 30;

  struct Hashed {
    std::uint32_t hash;
    std::uint32_t index;  // among the partners of the owner
  };

  // Returns the hash of a partner. It is a bijection on the numbers with as many bits as the limit, and
  // spreads neighbouring numbers.
  std::uint32_t hash(Rank partner) const { return (partner * 0x9e37'79b1U) & mask_; }

  // Adds an owner. The hashes of its partners must ascend; their places count up from `first_place`. Returns
  // false if too many hashes fall into one bucket.
  bool add(std::span<const Hashed> partners, std::size_t first_place);

  // Writes to `to` the places of those hashes that belong to partners of the owner, and returns the end. `to`
  // needs capacity for one more place than there are hashes: every hash writes a place, and if it belongs to
  // no partner, the next place overwrites it. A branch here would be mispredicted.
  std::uint32_t* list_places(std::size_t owner, std::span<const std::uint32_t> hashes,
                             std::uint32_t* to) const {
    const Owner entry = owners_[owner];
    const Bucket* buckets = buckets_.data() + entry.bucket;
    for (const std::uint32_t hash : hashes) {
      const std::uint64_t tag = hash & entry.tag_mask;
      const auto& words = buckets[hash >> entry.shift].words;
      const std::uint64_t low = lanes_with(tag, words[0]) & top_bits;
      const std::uint64_t high = lanes_with(tag, words[1]) & top_bits_of_three;
      const auto bit =
          static_cast<std::uint32_t>(low != 0 ? std::countr_zero(low) : 64 + std::countr_zero(high));
      *to = entry.place + static_cast<std::uint32_t>(words[1] >> 3 * lane_bits) + bit / lane_bits;
      to += (low | high) != 0;
    }
    return to;
  }

  std::size_t bytes() const { return sizeof(Owner) * owners_.size() + sizeof(Bucket) * buckets_.size(); }

 private:
  static constexpr unsigned lane_bits = 16;
  static constexpr std::uint64_t lane_ones = 0x0001'0001'0001'0001;
  static constexpr std::uint64_t top_bits = lane_ones << 15;
  static constexpr std::uint64_t top_bits_of_three = top_bits >> lane_bits;

  // Seven tags, then how many of the owner's partners are in earlier buckets.
  struct Bucket {
    std::uint64_t words[2];
  };
  // The buckets of an owner. A hash consists of a bucket number and a tag.
  struct Owner {
    std::uint32_t bucket;  // the owner's first bucket
    std::uint32_t place;   // of the owner's first partner
    std::uint32_t shift;
    std::uint32_t tag_mask;
  };

  // Returns the word with the top bit set in each lane that holds the tag. Lanes above the lowest match may
  // be wrong.
  static std::uint64_t lanes_with(std::uint64_t tag, std::uint64_t word) {
    const std::uint64_t different = word ^ tag * lane_ones;
    return (different - lane_ones) & ~different;
  }

  void fill(std::span<const Hashed> partners, const Owner& owner);

  unsigned hash_bits_;
  std::uint32_t mask_;
  std::vector<Owner> owners_;
  LargeVector<Bucket> buckets_;  // bucket 0 is empty, for owners without partners
};

}  // namespace unkernel::engines
