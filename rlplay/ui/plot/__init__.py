"""Curves, histograms and pictures as text, and what a curve panel can show."""
