"""Campaigns that test the whole package: kills, full disks, threads, memory, numbers.

Each is a program (``python -m campaigns.kills --help`` in the folder ``tests``) that runs as long as
requested, and exits with 1 if a check failed. The tests in this folder run short versions.
"""
