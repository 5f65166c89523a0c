"""Curves, histograms and pictures as text, and what a view of a curve panel is."""
