// A stream of Arrow batches from Python: the capsule that __arrow_c_stream__ returns.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "bindings.hpp"
#include "unkernel/records/arrow.hpp"

namespace unkernel::bindings {

using ArrowBatch = std::unique_ptr<records::Released<records::ArrowArray>>;

class ArrowStream {
 public:
  explicit ArrowStream(nb::capsule capsule)
      : capsule_(std::move(capsule)),
        stream_(static_cast<records::ArrowArrayStream*>(capsule_.data("arrow_array_stream"))) {
    check(stream_->get_schema(stream_, &schema_.value));
  }

  const records::ArrowSchema& schema() const { return schema_.value; }

  // Returns the next batch; null at the end.
  ArrowBatch next() {
    auto batch = std::make_unique<records::Released<records::ArrowArray>>();
    check(stream_->get_next(stream_, &batch->value));
    return batch->value.release == nullptr ? nullptr : std::move(batch);
  }

 private:
  void check(int code) {
    if (code == 0) return;
    const char* reason = stream_->get_last_error(stream_);
    throw std::invalid_argument(std::string("the table cannot be read: ") +
                                (reason == nullptr ? "?" : reason));
  }

  nb::capsule capsule_;
  records::ArrowArrayStream* stream_;
  records::Released<records::ArrowSchema> schema_;
};

}  // namespace unkernel::bindings
