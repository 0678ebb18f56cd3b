// Run-time dispatch on the instruction set. A function marked UNKERNEL_CLONES is compiled for several
// instruction sets, and the loader picks the best one that the machine supports. On other platforms the macro
// is empty, and a single portable version is compiled.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define UNKERNEL_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define UNKERNEL_CLONES
#endif
