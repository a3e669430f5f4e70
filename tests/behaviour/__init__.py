"""What the product shows to its users, recorded as text: `python -m tests.behaviour record DIR`, then `compare`."""
