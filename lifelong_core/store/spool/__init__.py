"""The spool: predictions that were answered while the database was away wait here, on the local disk.

Files of the folder, all readable by their owner only:

    *.segment   records, one after the other; the newest grows, the oldest is delivered and deleted
    *.keys      the request keys of a segment that grows no more; may be deleted, it only makes the next start faster
    lock        held while something is appended; the number of the newest segment
    delivery    held while something is delivered; how far the oldest segment is
    damaged     bytes that are no record: torn tails of killed writers, and what a disk has spoilt
    refused     log entries that the database refuses for good, each with the reason
"""
