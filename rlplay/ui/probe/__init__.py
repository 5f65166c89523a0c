"""The probe: questions about any beginning of an answer."""
