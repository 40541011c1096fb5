"""What the metrics and the dashboard show: titles, texts and metrics of the figures, and histograms.

This package imports neither `purgatory.relay` nor `purgatory.delayed`. So a process that has no relay and no
store of delayed messages loads neither of them.
"""
