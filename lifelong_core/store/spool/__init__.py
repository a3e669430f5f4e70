"""The spool: predictions answered while the database is unavailable, kept on the local disk until delivery.

Files of the folder, all readable by their owner only:

    *.segment   a sequence of records; appends go to the newest, delivery reads the oldest and deletes it
    *.keys      the request keys of a complete segment; may be deleted, it only makes the next start faster
    lock        lock of appends; holds the number of the newest segment
    delivery    lock of deliveries; holds the delivery progress in the oldest segment
    damaged     bytes that are no record: torn tails of killed writers, and bytes damaged on the disk
    refused     log entries that the database refuses permanently, each with the reason

An SQLite file would be shorter. It was measured and is no substitute: on a full disk it cannot delete delivered
records, so that the spool never becomes empty, and one damaged page can cost all records instead of those in the page.
"""
