"""Pages of populations: `fleet` lists all, `population` shows one over time, `cycle` what one cycle saw."""
