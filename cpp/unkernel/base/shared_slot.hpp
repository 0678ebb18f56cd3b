// A shared pointer that threads read while another thread replaces it.
//
// This is not a std::atomic<std::shared_ptr>: in libstdc++ 12 its load ends with a relaxed unlock, so that a
// store may overtake the end of a load, and the pointer of one object may get the counter of another. Also,
// the lock of this class can be released in the child of a fork if it was held when the process forked.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

namespace unkernel {

template <class T>
class SharedSlot {
 public:
  SharedSlot() = default;
  SharedSlot(const SharedSlot&) = delete;
  SharedSlot& operator=(const SharedSlot&) = delete;
  ~SharedSlot() { delete holder_.load(); }

  std::shared_ptr<T> get() const {
    const Lock lock(busy_);
    const std::shared_ptr<T>* holder = holder_.load(std::memory_order_relaxed);
    return holder == nullptr ? nullptr : *holder;
  }

  void set(std::shared_ptr<T> value) {
    T* object = value.get();
    auto fresh = std::make_unique<const std::shared_ptr<T>>(std::move(value));
    std::unique_ptr<const std::shared_ptr<T>> former;  // freed when the lock is released
    const Lock lock(busy_);
    // One store publishes the pointer: a process forked at this moment has the old or the new one.
    former.reset(holder_.exchange(fresh.release(), std::memory_order_relaxed));
    object_.store(object, std::memory_order_release);
  }

  // Updates the pointer that a thread holds. Cheap if nothing has changed: addresses are compared, because no
  // other object can be at the address of an object that is still held.
  void refresh(std::shared_ptr<T>& held) const {
    if (object_.load(std::memory_order_acquire) != held.get()) held = get();
  }

  // To be called in the child of a fork, which does not have the thread that may have held the lock.
  void release_after_fork() { busy_.clear(); }

 private:
  // Held for some ten instructions.
  struct Lock {
    explicit Lock(std::atomic_flag& flag) : busy(flag) {
      while (busy.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    }
    ~Lock() { busy.clear(std::memory_order_release); }
    std::atomic_flag& busy;
  };

  std::atomic<const std::shared_ptr<T>*> holder_ = nullptr;
  std::atomic<T*> object_ = nullptr;
  mutable std::atomic_flag busy_;
};

}  // namespace unkernel
