"""Campaigns against the whole package: kills, full disks, threads, memory, numbers.

Each is a program (``python -m campaigns.kills --help`` in the folder ``tests``) that runs as long as it is
told to, and ends with 1 where a promise was broken. The tests of this folder run short versions of the same.
"""
