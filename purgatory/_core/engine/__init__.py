"""Layer 4: the engine, which parks, checks, ends and accounts for operations."""

from purgatory._core.engine.engine import Engine
from purgatory._core.engine.slices import Closing, Sweep

__all__ = ["Closing", "Engine", "Sweep"]
