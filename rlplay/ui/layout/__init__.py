"""Where tokens and answers stand: lines of a given width, order, two layouts side by side. No colours, no widgets."""
