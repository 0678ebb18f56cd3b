"""What all learners share."""
