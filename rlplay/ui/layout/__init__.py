"""The layout of tokens and answers: lines of a given width, order, two runs side by side. No colours, no widgets."""
