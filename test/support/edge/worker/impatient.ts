import TestWorker from './worker.ts';

// The edge with a short time limit for the tag server.
TestWorker.originTimeout = 200;

export default TestWorker;
