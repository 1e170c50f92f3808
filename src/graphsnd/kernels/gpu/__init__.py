"""The Triton backend: tiles of pairs held in registers, observations across the grid."""
