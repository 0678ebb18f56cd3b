// Releases and takes Python's lock in a way that is safe for threads that outlive Python.
//
// When Python exits, it ends every daemon thread that requests the lock by unwinding its stack. Unwinding
// through a destructor would abort the process. So such a thread blocks instead: the process is exiting, and
// the thread can do nothing without the lock. Python 3.14 and later block such threads themselves.
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

// Releases the lock in this scope: other threads of Python can run.
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

// Holds the lock in this scope, in any thread. Inside the scope, call functions that may run Python code
// through `stay_if_python_ends`, because Python code releases the lock from time to time and requests it
// again.
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
