"""The surrogate as a picture, whose walls can be dragged."""
