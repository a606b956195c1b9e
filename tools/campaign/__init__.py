"""Campaigns: numbered tasks that are run by processes of this machine or by a Dask cluster, with results in one file.

A task is a pure function of its number and its parameters, so it may be run anywhere, and again where a process died.
What a task does is elsewhere (fuzzing, conformance, mutation); nothing here knows it.
"""
