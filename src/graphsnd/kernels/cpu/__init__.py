"""The numba backend: compiled once, cached on disk, threads over observations, vector lanes inside."""
