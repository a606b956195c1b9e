"""AMD: calls of /dev/kfd and its render nodes, streams of PM4, SDMA and AQL."""
