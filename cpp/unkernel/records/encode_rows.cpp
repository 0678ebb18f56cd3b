#include "unkernel/records/encode_rows.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "unkernel/base/parallel.hpp"

namespace unkernel::records {
namespace {

constexpr std::size_t rows_per_task = 4096;
constexpr std::size_t rows_per_batch = 1024;   // of encode_codes; the ids of a batch stay in the cache
constexpr std::size_t rows_read_at_once = 64;  // the cells of these rows stay in the first-level cache

// Encodes rows one by one. Reads a few rows at a time, column by column, so that the type of a column is
// looked up once for these rows.
class EncodeTask {
 public:
  EncodeTask(const Plan& plan, std::span<const Column> columns) : columns_(columns), worker_(plan) {}

  EncodedRows run(std::size_t begin, std::size_t end) {
    EncodedRows encoded;
    encoded.offsets.push_back(0);
    for (std::size_t first = begin; first < end; first += rows_read_at_once)
      encode_some(first, std::min(end, first + rows_read_at_once), encoded);
    return encoded;
  }

 private:
  void encode_some(std::size_t begin, std::size_t end, EncodedRows& encoded) {
    read(begin, end);
    const std::size_t width = columns_.size();
    for (std::size_t row = begin; row < end; ++row) {
      const EncodedRow encoded_row = encode(std::span(cells_).subspan((row - begin) * width, width), row);
      encoded.columns.insert(encoded.columns.end(), encoded_row.ids.begin(), encoded_row.ids.end());
      encoded.values.insert(encoded.values.end(), encoded_row.values.begin(), encoded_row.values.end());
      encoded.offsets.push_back(static_cast<std::int64_t>(encoded.columns.size()));
    }
  }

  void read(std::size_t begin, std::size_t end) {
    const std::size_t width = columns_.size();
    cells_.resize((end - begin) * width);
    for (std::size_t k = 0; k < width; ++k) read_cells(columns_[k], begin, end, cells_.data() + k, width);
  }

  EncodedRow encode(std::span<const Cell> cells, std::size_t row) {
    try {
      return worker_.encode(cells);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("row " + std::to_string(row) + ": " + error.what());
    }
  }

  std::span<const Column> columns_;
  PlanWorker worker_;
  std::vector<Cell> cells_;
};

// Removes the ids -1, which stand for no feature, from rows of `places` ids each. Computes the offsets.
void drop_ignored(std::size_t places, std::size_t rows, EncodedRows& all) {
  std::vector<std::int32_t>& ids = all.columns;
  all.offsets.resize(rows + 1, 0);
  std::int32_t negative = 0;
  for (const std::int32_t id : ids) negative |= id;
  if (negative >= 0) {
    for (std::size_t row = 0; row <= rows; ++row) all.offsets[row] = static_cast<std::int64_t>(row * places);
    return;
  }
  std::size_t remaining = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t k = row * places; k < (row + 1) * places; ++k) {
      ids[remaining] = ids[k];
      remaining += ids[k] >= 0 ? 1u : 0u;
    }
    all.offsets[row + 1] = static_cast<std::int64_t>(remaining);
  }
  ids.resize(remaining);
}

// Encodes rows column by column, so that the type of a column and its step are looked up once for many rows.
// This requires that each column gives at most one feature. Returns whether all rows could be encoded.
bool encode_codes(const Step& step, std::span<const Column> columns, std::size_t rows, int threads,
                  EncodedRows& all) {
  const std::size_t places = step.places();
  if (places == 0) return false;
  all.columns.resize(rows * places);
  std::atomic<bool> is_complete = true;
  const std::size_t tasks = (rows + rows_per_batch - 1) / rows_per_batch;
  parallel_for(threads, static_cast<std::int64_t>(tasks), [&](std::int64_t number) {
    const std::size_t begin = static_cast<std::size_t>(number) * rows_per_batch;
    const RowBatch batch{columns, begin, std::min(rows, begin + rows_per_batch)};
    if (!step.write_codes(batch, {all.columns.data() + begin * places, places})) is_complete = false;
  });
  if (!is_complete) return false;
  drop_ignored(places, rows, all);
  all.values.assign(all.columns.size(), 1.0);
  return true;
}

}  // namespace

void append(EncodedRows&& rows, EncodedRows& all) {
  if (all.offsets.size() <= 1) {
    all = std::move(rows);
    return;
  }
  const auto begin = static_cast<std::int64_t>(all.columns.size());
  for (std::size_t k = 1; k < rows.offsets.size(); ++k) all.offsets.push_back(begin + rows.offsets[k]);
  all.columns.insert(all.columns.end(), rows.columns.begin(), rows.columns.end());
  all.values.insert(all.values.end(), rows.values.begin(), rows.values.end());
}

EncodedRows encode_rows(const Plan& plan, std::span<const Column> columns, std::size_t rows,
                        Threads threads) {
  check_plan(columns.size() == plan.columns().size(), "the table has another number of columns");
  EncodedRows all;
  if (plan.steps() > 0 && encode_codes(plan.step(plan.steps() - 1), columns, rows, threads.count, all))
    return all;
  all = {};
  all.offsets.push_back(0);
  std::vector<EncodedRows> parts((rows + rows_per_task - 1) / rows_per_task);
  parallel_for(threads.count, static_cast<std::int64_t>(parts.size()), [&](std::int64_t number) {
    threads.monitor->throw_if_stopped();
    const auto part = static_cast<std::size_t>(number);
    parts[part] =
        EncodeTask(plan, columns).run(part * rows_per_task, std::min(rows, (part + 1) * rows_per_task));
  });
  for (EncodedRows& part : parts) {
    append(std::move(part), all);
    part = {};
  }
  return all;
}

}  // namespace unkernel::records
