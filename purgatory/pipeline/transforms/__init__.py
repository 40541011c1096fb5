"""Transforms of rows. Several commands share them, or `compact` or `generate` needs them."""
