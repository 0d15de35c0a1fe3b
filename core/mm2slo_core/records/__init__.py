"""Records of MirrorMaker 2's internal topics: frozen values with `decode` and `encode`.

Decoders take a record's key and value and return the decoded value, or a Tombstone with the key if
the value is null; they raise DecodeError with a reason from a closed list.
"""
