"""`lifelong doctor`: looks at a whole installation and says what is wrong and what to do. It changes nothing."""
