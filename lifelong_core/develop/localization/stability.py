"""Agreement of the patches that two models find positive."""
