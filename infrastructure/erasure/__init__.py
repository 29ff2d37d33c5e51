"""What keeps an erased conversation from being read, or from coming back (S3)."""
