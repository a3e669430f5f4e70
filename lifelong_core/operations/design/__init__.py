"""The design loop: interviews, and the recommendations that they lead to."""
