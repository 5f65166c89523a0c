"""The pull map and the importance ratios: what clipping lets through."""
