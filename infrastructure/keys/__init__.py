"""Where key-encryption keys come from (S1): a file, AWS KMS, Google Cloud KMS, Vault."""
