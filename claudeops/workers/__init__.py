"""The processes of one host: `up`, the worker of the queues, and the schedules.

`supervisor` and `parent_death` import no Django: a process that only waits for its children stays small. No other
package of claudeops may start a long-running process.
"""
