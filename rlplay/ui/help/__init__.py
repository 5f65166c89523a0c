"""Help about a panel."""
