// The calls of POSIX systems that some tests need; tests of forks and limits are left out on Windows.
#pragma once

#ifndef _WIN32
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#endif
