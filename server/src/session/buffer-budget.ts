import { Semaphore } from './semaphore.ts'

/** Reads of all connections that may be under way at once: each may gather tens of megabytes. */
const READS = 16

/** Long works of all connections at once: each holds a state and a share of the processor for seconds. */
const LONG = 2

/** A connection, as the budget sees it. */
export interface BudgetMember {
  /** There may be room again, or none any more. */
  steer(): void
}

interface Account {
  bytes: number
  stalled: boolean
}

/**
 * What all connections together hold in memory: requests under way and answers not yet taken. While it is over its limit
 * nobody reads on. What a stalled connection holds does not count towards that, or one peer that takes nothing could stop
 * all others; it has a limit of its own, which whoever watches the connections enforces by ending some.
 */
export class BufferBudget {
  private readonly limit: number
  private readonly accounts = new Map<BudgetMember, Account>()
  private active = 0
  /** Bytes that stalled connections hold. */
  stalledBytes = 0
  /** Turns for reads of the store. */
  readonly reads = new Semaphore(READS)
  /** Turns for long works. */
  readonly long = new Semaphore(LONG)
  private wasFull = false

  constructor(limit: number) {
    this.limit = limit
  }

  /** Whether those that are not stalled hold as much as they may. */
  get isFull(): boolean {
    return this.active >= this.limit
  }

  /** Whether stalled connections hold more than they may together. */
  get isOverrun(): boolean {
    return this.stalledBytes > this.limit
  }

  /** A connection holds so many bytes now. */
  set(member: BudgetMember, bytes: number): void {
    const account = this.accounts.get(member) ?? { bytes: 0, stalled: false }
    if (account.bytes === bytes) return
    this.accounts.set(member, account)
    this.add(account, bytes - account.bytes)
    account.bytes = bytes
    this.tell(member)
  }

  /** A connection waits for its peer, or does no more. */
  setStalled(member: BudgetMember, stalled: boolean): void {
    const account = this.accounts.get(member)
    if (account === undefined || account.stalled === stalled) return
    const { bytes } = account
    this.add(account, -bytes)
    account.stalled = stalled
    this.add(account, bytes)
    this.tell()
  }

  /** A connection is gone. */
  remove(member: BudgetMember): void {
    this.set(member, 0)
    this.accounts.delete(member)
  }

  private add({ stalled }: Account, bytes: number): void {
    if (stalled) this.stalledBytes += bytes
    else this.active += bytes
  }

  private tell(except?: BudgetMember): void {
    if (this.wasFull === this.isFull) return
    this.wasFull = this.isFull
    for (const member of this.accounts.keys()) if (member !== except) member.steer()
  }
}
