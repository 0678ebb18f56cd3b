#include "unkernel/engines/conjunctions/partner_buckets.hpp"

#include <algorithm>
#include <stdexcept>

namespace unkernel::engines {
namespace {

constexpr std::size_t tags_per_bucket = 7;
constexpr unsigned tag_bits = 15;                       // of 16 bits, so that no tag equals no_tag
constexpr std::uint64_t no_tag = 0xffff;                // an empty lane
constexpr std::uint64_t no_tags = ~std::uint64_t{0};    // a word of four empty lanes
constexpr std::size_t most_partners_of_owner = 0xffff;  // 16-bit lanes count them
constexpr std::size_t most_buckets_per_partner = 4;
constexpr std::size_t most_buckets = 0xffff'fff0;

unsigned bits_for(std::size_t limit) {
  if (limit >= PartnerBuckets::most_partners) throw std::invalid_argument("too many partners");
  return static_cast<unsigned>(std::bit_width(limit));
}

}  // namespace

PartnerBuckets::PartnerBuckets(std::size_t limit)
    : hash_bits_(bits_for(limit)),
      mask_((std::uint32_t{1} << hash_bits_) - 1),
      buckets_(1, Bucket{{no_tags, no_tags}}) {}

bool PartnerBuckets::add(std::span<const Hashed> partners, std::size_t first_place) {
  const auto place = static_cast<std::uint32_t>(first_place);
  if (partners.empty()) {
    owners_.push_back({0, place, hash_bits_, 0});
    return true;
  }
  const auto fits = [&](unsigned shift) {
    for (std::size_t k = tags_per_bucket; k < partners.size(); ++k) {
      if (partners[k].hash >> shift == partners[k - tags_per_bucket].hash >> shift) return false;
    }
    return true;
  };
  unsigned shift = std::min(tag_bits, hash_bits_);
  const std::size_t min_buckets = std::size_t{1} << (hash_bits_ - shift);
  while (!fits(shift)) --shift;
  const std::size_t count = std::size_t{1} << (hash_bits_ - shift);
  const bool hashes_coincide = count > std::max(min_buckets, most_buckets_per_partner * partners.size());
  if (hashes_coincide || partners.size() > most_partners_of_owner || buckets_.size() + count > most_buckets)
    return false;
  const Owner owner{static_cast<std::uint32_t>(buckets_.size()), place, shift,
                    (std::uint32_t{1} << shift) - 1};
  owners_.push_back(owner);
  buckets_.resize(buckets_.size() + count, Bucket{{no_tags, no_tags}});
  fill(partners, owner);
  return true;
}

void PartnerBuckets::fill(std::span<const Hashed> partners, const Owner& owner) {
  std::size_t first = 0;  // first partner in the bucket
  for (std::size_t k = 0; k < partners.size(); ++k) {
    const std::uint32_t number = partners[k].hash >> owner.shift;
    Bucket& bucket = buckets_[owner.bucket + number];
    if (k == 0 || partners[k - 1].hash >> owner.shift != number) {
      first = k;
      bucket.words[1] ^= (no_tag ^ k) << 3 * lane_bits;  // the last lane becomes k
    }
    const std::size_t lane = k - first;
    bucket.words[lane / 4] ^= (no_tag ^ (partners[k].hash & owner.tag_mask)) << lane % 4 * lane_bits;
  }
}

}  // namespace unkernel::engines
