"""Curves, histograms and pictures as text, and the views of a curve panel."""
