// Python's lock, given back and taken again so that threads that outlive Python do no harm.
//
// When Python ends, it ends every daemon thread that asks for the lock by unwinding its stack. That must not
// pass a destructor, or the whole process is aborted. So such a thread stays where it is: the process ends
// anyway, and nothing else can be done without the lock. Python 3.14 does the same by itself.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

namespace unkernel::bindings {

template <class Call>
auto stay_if_python_ends(const Call& call) {
#ifdef __GLIBCXX__
  try {
    return call();
  } catch (const abi::__forced_unwind&) {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
#else
  return call();
#endif
}

// Without the lock, in this scope: other threads of Python run meanwhile.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() {
    stay_if_python_ends([&] { PyEval_RestoreThread(state_); });
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// With the lock, in this scope, in any thread. What may run code of Python in it is called by
// `stay_if_python_ends`: such code gives the lock away now and then, and asks for it again.
class Locked {
 public:
  Locked() : state_(stay_if_python_ends([] { return PyGILState_Ensure(); })) {}
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace unkernel::bindings
