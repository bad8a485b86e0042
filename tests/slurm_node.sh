#!/bin/bash
# A Slurm of one node on this machine, for the tests marked `slurm`:
#
#   tests/slurm_node.sh install && tests/slurm_node.sh up
#   LAB_SLURM=1 pytest -m slurm tests/lab/composing/test_slurm.py
#   tests/slurm_node.sh down
#
# It needs Debian 12 and root, and no systemd. It OVERWRITES /etc/slurm and DROPS the database
# slurm_acct_db, so use a machine that has no Slurm of its own. The daemons listen on loopback only.
# `up` starts each in the foreground of a background process, so that its pid is known; `down` ends
# exactly these. `up plain` leaves the accounting (MariaDB, slurmdbd) out, as some clusters do.
set -euo pipefail
state=${SLURM_NODE_STATE:-/var/tmp/one-node-slurm}
node=$(hostname --short)

start() { # NAME COMMAND...
    local name=$1
    shift
    "$@" >"$state/$name.out" 2>&1 &
    echo $! >"$state/$name.pid"
}

await() { # COMMAND...: until it succeeds
    local tries
    for tries in $(seq 120); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.25
    done
    echo "no success after 30 s: $*; the logs are in $state, and \`$0 down\` ends what runs" >&2
    exit 1
}

end() { # NAME
    local file=$state/$1.pid pid
    [ -e "$file" ] || return 0
    pid=$(cat "$file")
    if kill "$pid" 2>/dev/null; then
        while kill -0 "$pid" 2>/dev/null; do sleep 0.25; done
    fi
    rm "$file"
}

is_idle() { sinfo --noheader --format=%T | grep --quiet idle; }

accounting() {
    install --directory --owner=mysql /run/mysqld
    start mariadb mariadbd --user=mysql --skip-networking
    await mysqladmin ping
    # Job ids start at 1 again, so what the database says of those numbers is about other jobs.
    mysql <<'SQL'
drop database if exists slurm_acct_db;
create database slurm_acct_db;
create or replace user slurm@localhost identified by 'loopback-only';
grant all on slurm_acct_db.* to slurm@localhost;
SQL
    install --mode=600 /dev/stdin /etc/slurm/slurmdbd.conf <<CONF
AuthType=auth/munge
DbdHost=localhost
DbdAddr=127.0.0.1
CommunicationParameters=NoInAddrAny
SlurmUser=root
PidFile=$state/slurmdbd.own.pid
LogFile=$state/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass=loopback-only
StorageLoc=slurm_acct_db
CONF
    cat >>/etc/slurm/slurm.conf <<CONF
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
JobAcctGatherType=jobacct_gather/linux
CONF
    start slurmdbd slurmdbd -D
    await sacctmgr --noheader list cluster
    sacctmgr --immediate add cluster one >/dev/null
}

up() {
    mkdir --parents "$state/controller" "$state/node"
    install --directory --owner=munge /run/munge
    cat >/etc/slurm/slurm.conf <<CONF
ClusterName=one
SlurmctldHost=$node(127.0.0.1)
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
AuthType=auth/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$state/controller
SlurmdSpoolDir=$state/node
SlurmctldPidFile=$state/slurmctld.own.pid
SlurmdPidFile=$state/slurmd.own.pid
SlurmctldLogFile=$state/slurmctld.log
SlurmdLogFile=$state/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=debug Nodes=$node Default=YES MaxTime=INFINITE State=UP
CONF
    start munged setpriv --reuid=munge --regid=munge --init-groups munged --foreground
    await munge --no-input
    if [ "${1:-}" != plain ]; then accounting; fi
    start slurmctld slurmctld -D
    start slurmd slurmd -D
    await is_idle
    sinfo
}

down() {
    scancel --user="$(id --user --name)" 2>/dev/null || true
    for name in slurmd slurmctld slurmdbd mariadb munged; do end "$name"; done
    rm --recursive --force "$state"
}

case ${1:-} in
install)
    apt-get update --quiet
    DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends \
        munge slurmctld slurmd slurm-client slurmdbd mariadb-server
    ;;
up) up "${2:-}" ;;
down) down ;;
*)
    echo "usage: $0 install | up [plain] | down" >&2
    exit 2
    ;;
esac
