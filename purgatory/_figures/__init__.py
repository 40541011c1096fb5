"""What the metrics and the dashboard show: titles, texts and metrics of the figures, and histograms.

It imports nothing that counts, so a process without a relay or a store of delayed messages needs neither.
"""
