"""What ``unkernel train`` knows of each kind of model."""
