// Code for the machine it runs on: a function marked UNKERNEL_CLONES is compiled for several instruction
// sets, and the best that the machine has is chosen when the program is loaded. Elsewhere the mark says
// nothing, and the one version that there is runs everywhere.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define UNKERNEL_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define UNKERNEL_CLONES
#endif
