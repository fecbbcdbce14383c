"""The processes of one host: `up`, the worker of the queues, the schedules, and `doctor`.

`supervisor` and `parent_death` import no Django: a process that only waits for its children stays small. No other
package of claudeops may start a long-running process.
"""
