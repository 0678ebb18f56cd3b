// Columns of Arrow tables, read in place through Arrow's C data interface, without Arrow's library.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "unkernel/records/column.hpp"

namespace unkernel::records {

// The structures of the interface, with the members that Arrow's specification prescribes.
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

// Owns a structure that another library fills, and calls its release function in the destructor.
template <class Structure>
class Released {
 public:
  Released() = default;
  ~Released() {
    if (value.release != nullptr) value.release(&value);
  }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

  Structure value{};
};

// Returns the columns of a batch (an array of structures) with these names. Columns that are missing, or
// whose name is null, are empty. Throws std::invalid_argument for types that no cell has. The batch must
// outlive the columns.
std::vector<Column> arrow_columns(const ArrowSchema& schema, const ArrowArray& batch,
                                  std::span<const std::string* const> names);

// Returns the column of a single array.
Column arrow_column(const ArrowSchema& schema, const ArrowArray& array);

// The type of a column's values.
enum class ArrowType { truth, integer, real, text, list, moment };
ArrowType arrow_type(const ArrowSchema& schema);

// Returns whether the batch has a column of this name.
bool has_column(const ArrowSchema& schema, const std::string& name);

}  // namespace unkernel::records
