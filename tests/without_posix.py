"""A Python without everything that Windows lacks, for the modules of unkernel only.

Importing this module affects the whole process, so it is meant for processes that tests start.
"""

from __future__ import annotations

import builtins
import os
import signal
import socket
from types import ModuleType
from typing import Any

_MODULES = "_posixsubprocess curses fcntl grp posix pty pwd readline resource syslog termios tty uvloop"
_OS = (
    "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_TMPFILE chown chroot confstr eventfd fchmod fchown "
    "fork forkpty getegid geteuid getgid getloadavg getpgid getpgrp getpriority getsid getuid killpg "
    "lockf memfd_create mkfifo mknod nice openpty pidfd_open pipe2 posix_fadvise posix_fallocate "
    "posix_spawn pread pwrite readv register_at_fork sched_getaffinity sched_setaffinity sched_yield "
    "sendfile setpgid setpriority setsid statvfs sync sysconf sysconf_names tcgetpgrp ttyname umount "
    "uname unshare wait3 wait4 writev"
)
_SIGNAL = (
    "SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2 SIGWINCH "
    "SIG_BLOCK SIG_SETMASK SIG_UNBLOCK alarm getitimer pause pthread_kill pthread_sigmask setitimer "
    "siginterrupt sigpending sigtimedwait sigwait"
)
_SOCKET = "AF_UNIX SO_REUSEPORT socketpair send_fds recv_fds"


def _lacking(module: ModuleType, names: str) -> ModuleType:
    """Return a copy of a module without some of its names."""
    copy = ModuleType(module.__name__, module.__doc__)
    left_out = set(names.split())
    vars(copy).update({name: value for name, value in vars(module).items() if name not in left_out})
    return copy


_COPIES = {"os": _lacking(os, _OS), "signal": _lacking(signal, _SIGNAL), "socket": _lacking(socket, _SOCKET)}
_COPIES["os"].supports_dir_fd = frozenset()  # type: ignore[attr-defined]
_IMPORT = builtins.__import__


def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    importer = str((globals or {}).get("__name__", ""))
    if level == 0 and importer.partition(".")[0] == "unkernel":
        if name.partition(".")[0] in _MODULES.split():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if name in _COPIES:
            return _COPIES[name]
    return _IMPORT(name, globals, locals, fromlist, level)


builtins.__import__ = _import
