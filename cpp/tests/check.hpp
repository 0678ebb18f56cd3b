// A test is a program. CHECK ends it with a line that shows the place and the condition that does not hold.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                                 \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: CHECK(%s) failed\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                      \
    }                                                                                    \
  } while (false)

#define CHECK_THROWS(expression, type)                                                              \
  do {                                                                                              \
    bool thrown = false;                                                                            \
    try {                                                                                           \
      (void)(expression);                                                                           \
    } catch (const type&) { thrown = true; }                                                        \
    if (!thrown) {                                                                                  \
      std::fprintf(stderr, "%s:%d: %s did not throw %s\n", __FILE__, __LINE__, #expression, #type); \
      std::exit(1);                                                                                 \
    }                                                                                               \
  } while (false)
